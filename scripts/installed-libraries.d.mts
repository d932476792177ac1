export const INSTALLED_LIBRARIES: readonly string[];
