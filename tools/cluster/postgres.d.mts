/** User and group that PostgreSQL runs as; empty where it may run as the current user. */
export function ownerIds(): { readonly uid?: number; readonly gid?: number };
/** Path of one of PostgreSQL's programs, of the newest installed version. */
export function program(name: string): string;
