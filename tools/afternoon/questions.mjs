// Twelve questions about the afternoon of events.mjs, each with what one clicks in the dashboard, from the overview on, and
// what the page then says. docs/afternoon.md lists the same, and test/dashboard/whole/afternoon.test.ts clicks them.
import { ADA, ALARM, FAULT, SUBSCRIPTION, WRONG_NAME } from "./events.mjs";

const history = (hall) => ["Streams", hall, "History"];

/** `clicks`: words of a link, button, tab or row. `answer`: all of them are on the page, with spaces as one.
 *  @type {readonly {
 *    readonly question: string;
 *    readonly clicks: readonly string[];
 *    readonly answer: readonly (string | RegExp)[];
 *  }[]} */
export const QUESTIONS = [
  { question: "Why could Hall 7 not go live?", clicks: history("Hall 7"), answer: ["The stream is locked."] },
  { question: "Who locked Hall 7?", clicks: ["Audit log"], answer: [/Locked a stream \S+ Hall 7 ada@customer/] },
  {
    question: "Why could Hall 8 not go live?",
    clicks: history("Hall 8"),
    answer: ["The stream needs a publish key, and none came with the request."],
  },
  { question: "Why could Hall 9 not go live?", clicks: history("Hall 9"), answer: [SUBSCRIPTION] },
  {
    question: "A new encoder is refused, and no stream shows it: what does it send?",
    clicks: ["Unknown name"],
    answer: ["No stream has this name.", WRONG_NAME],
  },
  {
    question: "Why was the second encoder of Hall 1 refused?",
    clicks: history("Hall 1"),
    answer: ["The stream was live already."],
  },
  {
    question: "Why could Hall 11 not go live?",
    clicks: history("Hall 11"),
    answer: ["Your webhook failed (status 500)"],
  },
  {
    question: "What did our server say at that time?",
    clicks: ["Webhook", "Publish request"],
    answer: [FAULT],
  },
  { question: "Who ended the broadcast of Hall 3, and why?", clicks: history("Hall 3"), answer: [ALARM, `By ${ADA}`] },
  {
    question: "Why did the broadcast of Hall 5 end?",
    clicks: history("Hall 5"),
    answer: ["The connection to the broadcaster was lost."],
  },
  {
    question: "Which upstream is down, since when, and why?",
    clicks: [],
    answer: [/\S+ does not receive the stream since .* (ago|just now)/, "The last error: "],
  },
  {
    question: "Why can nothing go live now?",
    clicks: [],
    answer: ["This Headgate is draining: it takes no new broadcasts."],
  },
];
