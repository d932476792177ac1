// Entries of the audit log in words. Pure. An unknown action is shown by its own name.

/** The areas to filter by: the first part of an action, and its title. */
export const AREAS = {
  stream: "Streams",
  session: "Running broadcasts",
  token: "Web tokens",
  webhook: "Webhook",
  delivery: "Deliveries",
  settings: "Settings",
  key: "API keys",
  user: "People",
  identity_provider: "Identity provider",
  organisation: "Organisation",
  capture: "Captures",
} as const;

const ACTIONS: Readonly<Record<string, string>> = {
  "capture.start": "Began to capture a broadcast",
  "capture.stop": "Ended a capture",
  "delivery.replay": "Sent a delivery again",
  "identity_provider.remove": "Removed the identity provider",
  "identity_provider.set": "Set the identity provider",
  "key.create": "Created an API key",
  "key.revoke": "Revoked an API key",
  "key.rotate": "Replaced an API key",
  "organisation.create": "Created the organisation",
  "organisation.disable": "Disabled the organisation",
  "organisation.enable": "Enabled the organisation",
  "organisation.limit": "Limited the organisation",
  "organisation.operator": "Changed which organisation operates the deployment",
  "session.bitrate": "Limited the bitrate of a broadcast",
  "session.kick": "Ended a broadcast",
  "session.upstream.add": "Added an upstream to a broadcast",
  "session.upstream.remove": "Removed an upstream from a broadcast",
  "settings.change": "Changed settings",
  "settings.logo": "Set the logo",
  "settings.logo_remove": "Removed the logo",
  "stream.create": "Created a stream",
  "stream.delete": "Deleted a stream",
  "stream.key": "Renewed the publish key of a stream",
  "stream.publish_key": "Changed whether a stream needs its publish key",
  "stream.lock": "Locked a stream",
  "stream.stop": "Stopped a stream",
  "stream.title": "Changed the title of a stream",
  "stream.external_id": "Changed the external id of a stream",
  "stream.tag": "Changed tags of a stream",
  "stream.switch": "Switched a stream to its other publish",
  "stream.hold": "Changed how long lost publishes of a stream are held",
  "stream.unlock": "Unlocked a stream",
  "stream.upstream.add": "Added an upstream to a stream",
  "stream.upstream.pause": "Paused an upstream of a stream",
  "stream.upstream.remove": "Removed an upstream from a stream",
  "stream.upstream.resume": "Resumed an upstream of a stream",
  "stream.upstream.retry": "Had an upstream tried at once",
  "stream.upstream.test": "Tested an upstream of a stream",
  "token.revoke": "Revoked a web token",
  "token.revoke_stream": "Revoked the web tokens of a stream",
  "user.change": "Changed a person’s role or password",
  "user.create": "Added a person",
  "user.password": "Changed a password",
  "user.password_link": "Made a link for a new password",
  "user.remove": "Removed a person",
  "user.role": "Changed a person’s role",
  "user.sign_in": "Signed in at the identity provider",
  "user.sign_in_refused": "Was refused at the identity provider’s sign-in",
  "webhook.copies.remove": "Removed the second webhook",
  "webhook.copies.secret": "Created a secret of the second webhook",
  "webhook.copies.set": "Set the second webhook",
  "webhook.remove": "Removed the webhook",
  "webhook.secret": "Created a webhook secret",
  "webhook.set": "Set the webhook",
};

export function actionWords(action: string): string {
  return ACTIONS[action] ?? action;
}

/** The details as `name: value`, in order; null and empty values are left out, and so is an id, which says nothing to
 *  people. */
export function detailWords(detail: Readonly<Record<string, unknown>>): readonly string[] {
  return Object.entries(detail)
    .filter(
      ([name, value]) =>
        name !== "id" && value !== null && value !== "" && !(Array.isArray(value) && value.length === 0),
    )
    .map(([name, value]) => `${name.replaceAll("_", " ")}: ${valueWords(value)}`);
}

function valueWords(value: unknown): string {
  if (Array.isArray(value)) return value.map(valueWords).join(", ");
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
