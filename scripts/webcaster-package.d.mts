export function bundleWebcaster(folder: string): Promise<void>;
export function packWebcaster(folder: string): Promise<string>;
