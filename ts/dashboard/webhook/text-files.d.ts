// Files that the build puts into the script as they are.
declare module "*.txt" {
  const text: string;
  // biome-ignore lint/style/noDefaultExport: that is how a bundler gives a file's text
  export default text;
}
