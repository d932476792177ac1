// Code with which a customer verifies that a call is Headgate's (Standard Webhooks 1.0), in four languages. Each is a
// file of its own, which test/webhook/webhook-snippets.test.ts runs unchanged.
import go from "./snippets/go.txt";
import node from "./snippets/node.txt";
import php from "./snippets/php.txt";
import python from "./snippets/python.txt";

export const SNIPPETS: readonly { readonly language: string; readonly code: string }[] = [
  { language: "Node.js", code: node },
  { language: "Python", code: python },
  { language: "PHP", code: php },
  { language: "Go", code: go },
];
