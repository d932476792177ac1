// Types of grafana.mjs.

/** The dashboard as Grafana imports it. */
export declare function dashboard(): object;
/** The file's content. */
export declare function text(): string;
