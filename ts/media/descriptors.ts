// File descriptors of this process, which JavaScript can only close.
import { duplicateDescriptor } from "#native";

/** Duplicates the descriptor of an open socket; both have to be closed. Throws the system's error. */
export function duplicate(descriptor: number): number {
  return duplicateDescriptor(descriptor);
}
