// A developer's program, which knows nothing of Headgate except its client. A test runs it; the type checker checks it.
import { answerOf, createHeadgateClient, HeadgateError, type Records } from "../../ts/client/index.ts";

export interface Report {
  readonly stream: Records["Stream"];
  readonly webhook: string | null;
  readonly token: string;
  readonly sessions: readonly Records["Session"][];
  readonly refusal: HeadgateError;
}

export async function run(baseUrl: string, apiKey: string, webhook: string): Promise<Report> {
  const headgate = createHeadgateClient({ baseUrl, apiKey });

  const stream = await answerOf(headgate.POST("/stream", { body: { tags: ["studio-1"] } }));
  const organisation = await answerOf(headgate.PUT("/organisation/webhook", { body: { webhook } }));
  const { url, streamname } = stream.ingest.rtmp;
  const { data } = await answerOf(headgate.POST("/webcaster", { body: { streamname, ingesturl: url } }));
  await answerOf(headgate.POST("/webcaster/verify", { body: { token: data.token } }));
  const sessions = await answerOf(headgate.GET("/session"));
  const found = await answerOf(headgate.GET("/stream", { params: { query: { "tags[]": ["studio-1"], quantity: 5 } } }));
  if (found[0]?.id !== stream.id) throw new Error("the stream is not found by its tag");
  return { stream, webhook: organisation.webhook, token: data.token, sessions, refusal: await refused() };

  async function refused(): Promise<HeadgateError> {
    try {
      await answerOf(headgate.GET("/stream/{id}", { params: { path: { id: "none" } } }));
    } catch (error) {
      if (error instanceof HeadgateError) return error;
      throw error;
    }
    throw new Error("a stream that never was is known");
  }
}
