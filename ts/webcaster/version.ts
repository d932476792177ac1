// The version of this package, inserted by the bundler (scripts/webcaster-package.mjs).

declare const PACKAGE_VERSION: string;

export const VERSION = PACKAGE_VERSION;
