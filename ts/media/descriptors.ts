// File descriptors of this process, which JavaScript can only close.
export { duplicateDescriptor as duplicate } from "#native";
