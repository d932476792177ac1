// Types of grafana.mjs.

/** The dashboard as Grafana imports it. */
export declare function dashboard(): object;
/** Of the file, as it is written. */
export declare function text(): string;
