// What debian.mjs gives.

/** Makes a Debian package of a built Headgate, with the Node at `node` in it if there is one. Throws when the folder is not
 *  built, or a program fails. */
export function makePackage(folder: string, out: string, node: string | undefined): void;
/** The field Depends of a package whose addons need this glibc. */
export function dependsOf(glibc: string, bringsNode: boolean): string;
