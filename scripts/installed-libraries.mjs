// Which libraries the gateway imports from where npm has installed them. All others are in dist/libraries, where
// scripts/gateway-libraries.mjs puts them: packages declare only these.

/** They look for files beside their own: native code, and the programs of threads. */
export const INSTALLED_LIBRARIES = ["@node-rs/argon2", "libsql", "pino", "pino-pretty"];
