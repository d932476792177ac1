export function untidyFiles(
  files: readonly { readonly name: string; readonly text: string }[],
  stillLonger?: readonly string[],
): string[];
