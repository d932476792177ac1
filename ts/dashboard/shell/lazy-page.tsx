// A page whose chunk of the script is loaded when it is opened.
import type { FunctionComponent } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Loading, Problem } from "../parts/states.tsx";

/** `load` returns the component; it is called once, and again when the person retries after a failure. */
export function lazyPage<Props extends object>(
  load: () => Promise<FunctionComponent<Props>>,
): FunctionComponent<Props> {
  let loaded: FunctionComponent<Props> | null = null;
  return function LazyPage(props) {
    const [state, setState] = useState<"loading" | "ready" | "failed">(loaded === null ? "loading" : "ready");
    useEffect(() => {
      if (state !== "loading") return;
      load().then(
        (component) => {
          loaded = component;
          setState("ready");
        },
        () => setState("failed"),
      );
    }, [state]);
    const Page = loaded;
    if (Page !== null) return <Page {...props} />;
    if (state === "loading") return <Loading words="Opening the page …" />;
    return (
      <Problem title="This page could not be loaded" again={() => location.reload()} does="Reload">
        Headgate may have been updated since you opened the dashboard. Reload to get the new version.
      </Problem>
    );
  };
}
