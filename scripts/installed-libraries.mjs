// The libraries that the gateway imports from where npm has installed them. All others are in dist/libraries, where
// scripts/gateway-libraries.mjs puts them: packages declare only these as dependencies.

/** They load files relative to their own: native code, and worker scripts. */
export const INSTALLED_LIBRARIES = ["@node-rs/argon2", "libsql", "pino", "pino-pretty"];
