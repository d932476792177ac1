// The dashboard's entry: renders it into the document. Everything else takes what it needs from there.
import { render } from "preact";
import { Dashboard } from "./dashboard.tsx";
import { isReadable } from "./shell/addresses.ts";
import { startSession } from "./shell/session.ts";

// The router decodes addresses and would throw: one that nobody can read is no page of ours.
if (!isReadable(location.pathname)) history.replaceState(null, "", "/dashboard/");
void startSession();
const place = document.getElementById("dashboard");
if (place !== null) render(<Dashboard />, place);
