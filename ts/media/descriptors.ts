// File descriptors of this process, which JavaScript only closes.
import { duplicateDescriptor } from "#native";

/** Another descriptor of an open socket; both are closed for themselves. Throws what the system refuses. */
export function duplicate(descriptor: number): number {
  return duplicateDescriptor(descriptor);
}
