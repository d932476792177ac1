// Loads lists of streams from the API.
import { answerOf, api, isHeadgateError, pageOf } from "../shell/client.ts";
import type { StreamFilter, StreamSource } from "./stream-list.ts";

/** A small first page is shown soon; larger ones follow, so that they are few. */
const FIRST_PAGE = 60;
const NEXT_PAGE = 500;

export const streamSource: StreamSource = {
  async page(filter, cursor, signal) {
    const quantity = cursor === null ? FIRST_PAGE : NEXT_PAGE;
    const query = { ...queryOf(filter), quantity, order: "live" as const, ...(cursor === null ? {} : { cursor }) };
    const { page: streams, next } = await pageOf(api.GET("/stream", { params: { query }, signal }));
    return { streams, next };
  },
  async one(id, signal) {
    try {
      return await answerOf(api.GET("/stream/{id}", { params: { path: { id } }, signal }));
    } catch (error) {
      if (isHeadgateError(error) && error.status === 404) return null;
      throw error;
    }
  },
};

/** A few matching streams, for the command palette. */
export async function findStreams(search: string, quantity: number, signal: AbortSignal) {
  const query = { ...queryOf({ state: null, tags: [], search }), quantity, order: "live" as const };
  return await answerOf(api.GET("/stream", { params: { query }, signal }));
}

function queryOf({ state, tags, search }: StreamFilter) {
  return {
    ...(state === null ? {} : { state }),
    ...(tags.length === 0 ? {} : { "tags[]": [...tags] }),
    ...(search === "" ? {} : { search }),
  };
}
