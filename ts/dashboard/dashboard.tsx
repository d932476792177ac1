// The whole dashboard: the login, or the frame with the page for the current path.
import { LocationProvider, Route, Router } from "preact-iso/router";
import { isNewPasswordLink, NewPasswordPage } from "./organisation/new-password-page.tsx";
import { Banner } from "./overview/banner.tsx";
import { PAGES } from "./pages.ts";
import { ConfirmHost } from "./parts/confirm.tsx";
import { Loading, Problem } from "./parts/states.tsx";
import { Toasts } from "./parts/toasts.tsx";
import { Frame } from "./shell/frame.tsx";
import { Login, LoginOver } from "./shell/login.tsx";
import { NoSuchPage } from "./shell/no-such-page.tsx";
import { PageBoundary } from "./shell/page-boundary.tsx";
import type { Me } from "./shell/permissions.ts";
import { may, present, session, startSession } from "./shell/session.ts";
import { StreamCommands } from "./streams/commands.tsx";

export function Dashboard() {
  return (
    <>
      <Content />
      <Toasts />
    </>
  );
}

function Content() {
  const known = session.value;
  const who = present();
  // Whoever is signed in here may not be the one whom the link is for.
  if (isNewPasswordLink()) return <NewPasswordPage />;
  switch (known.state) {
    case "asking":
      return <Loading words="Opening the dashboard …" />;
    case "unreachable":
      return (
        <main class="alone">
          <Problem title="Headgate does not answer" again={() => void startSession()}>
            The service may be restarting, or this device may be offline. Nothing you did is lost.
          </Problem>
        </main>
      );
  }
  if (who === null) return <Login why={known.state === "out" ? known.why : null} />;
  return (
    <>
      {known.state === "out" && <LoginOver why={known.why} />}
      <div class="kept" key={who.id} hidden={known.state === "out"}>
        <Pages me={who} />
        <ConfirmHost />
      </div>
    </>
  );
}

function Pages({ me }: { readonly me: Me }) {
  return (
    <LocationProvider scope="/dashboard">
      <StreamCommands />
      <Frame pages={PAGES} me={me}>
        {may("view_deliveries") && <Banner />}
        <PageBoundary>
          <Router>
            {PAGES.filter(({ needs }) => needs === undefined || may(needs)).flatMap(({ path, also = [], component }) =>
              [path, ...also].map((address) => <Route key={address} path={address} component={component} />),
            )}
            <Route default component={NoSuchPage} />
          </Router>
        </PageBoundary>
      </Frame>
    </LocationProvider>
  );
}
