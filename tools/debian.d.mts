// Types of debian.mjs.

/** Makes a Debian package of a built Headgate, which includes the Node at `node` if given. Throws if the folder is
 *  not built, or a program fails. */
export function makePackage(folder: string, out: string, node: string | undefined): void;
/** The field Depends of a package whose addons need this glibc. */
export function dependsOf(glibc: string, bringsNode: boolean): string;
