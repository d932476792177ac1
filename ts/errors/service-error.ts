// What all errors of this service have in common.

/** Base of every error this service raises on purpose. `code` is stable and part of the contract. */
export abstract class ServiceError extends Error {
  abstract readonly code: string;
}
