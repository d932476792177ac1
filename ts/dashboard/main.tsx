// The dashboard's entry point: renders it into the document.
import { render } from "preact";
import { Dashboard } from "./dashboard.tsx";
import { isReadable } from "./shell/addresses.ts";
import { startSession } from "./shell/session.ts";

// The router decodes paths and would throw: a path that cannot be decoded is no page of the dashboard.
if (!isReadable(location.pathname)) history.replaceState(null, "", "/dashboard/");
void startSession();
const root = document.getElementById("dashboard");
if (root !== null) render(<Dashboard />, root);
