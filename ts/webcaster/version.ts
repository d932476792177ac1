// The version of this package, which the bundler fills in (scripts/webcaster-package.mjs).

declare const PACKAGE_VERSION: string;

export const VERSION = PACKAGE_VERSION;
