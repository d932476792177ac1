// Files that the build embeds into the script as text.
declare module "*.txt" {
  const text: string;
  // biome-ignore lint/style/noDefaultExport: that is how a bundler gives a file's text
  export default text;
}
