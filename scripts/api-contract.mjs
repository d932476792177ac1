// What callers of the API rely on, as lines: routes, parameters, bodies, statuses, headers, and the members of each
// schema with their types. A line that is gone or different breaks a caller; a further line does not. Members of a
// request that must be sent are on one line, because one more of them breaks callers too.

/** Columns of a line that its paragraph in the file says once. */
const HEAD = /^(?:[A-Z]+ \/\S*|webhook \w+|\w+)(?=[:. ])/;

/** The lines as paragraphs, one for each route and schema.
 *  @param {readonly string[]} lines sorted
 *  @returns {string} */
export function contractText(lines) {
  let last = "";
  const written = lines.map((line) => {
    const [head = ""] = HEAD.exec(line) ?? [];
    const start = head === last ? "" : `${head}\n`;
    last = head;
    return `${start} ${line.slice(head.length)}\n`;
  });
  return written.join("");
}

/** @param {string} text of `contractText`
 *  @returns {string[]} */
export function contractLines(text) {
  let head = "";
  return text.split("\n").flatMap((line) => {
    if (line.startsWith(" ")) return [head + line.slice(1)];
    head = line;
    return [];
  });
}

/** @param {any} document OpenAPI 3.1
 *  @returns {string[]} sorted */
export function contractOf({ paths, webhooks, components }) {
  const lines = new Set();
  const { schemas } = components;
  for (const [name, schema] of Object.entries(schemas)) describe(name, schema, true);
  for (const [path, methods] of Object.entries(paths)) {
    for (const [method, operation] of Object.entries(methods))
      addOperation(`${method.toUpperCase()} ${path}`, operation);
  }
  for (const [call, { post }] of Object.entries(webhooks)) addOperation(`webhook ${call}`, post, true);
  return [...lines].sort();

  /** `isSent`: we make the request. */
  function addOperation(route, { operationId, parameters = [], requestBody, responses }, isSent = false) {
    lines.add(`${route} is ${operationId}`);
    for (const { in: place, name, schema } of parameters) describe(`${route} ${place} ${name}`, schema, false);
    requires(
      route,
      parameters.filter(({ required }) => required).map(({ name }) => name),
    );
    if (requestBody?.required) lines.add(`${route} requires a body`);
    addContent(`${route} body`, requestBody, isSent);
    for (const [status, { content, headers = {} }] of Object.entries(responses)) {
      if (content === undefined) lines.add(`${route} ${status}`);
      addContent(`${route} ${status}`, { content }, !isSent);
      for (const name of Object.keys(headers)) lines.add(`${route} ${status} header ${name}`);
    }
  }

  function addContent(path, { content = {} } = {}, isAnswer) {
    for (const [type, { schema }] of Object.entries(content)) describe(`${path} ${type}`, schema, isAnswer);
  }

  function requires(path, names) {
    if (names.length > 0) lines.add(`${path} requires ${[...names].sort().join(", ")}`);
  }

  /** In an answer a member says whether it may be missing, and a schema with a name is described once. */
  function describe(path, schema, isAnswer) {
    const kinds = kindsOf(schema ?? {}, isAnswer);
    lines.add(`${path}: ${[...new Set(kinds.map(nameOf))].sort().join(" | ")}`);
    for (const { properties = {}, required = [], items, enum: values = [], additionalProperties: others } of kinds) {
      if (!isAnswer) requires(path, required);
      for (const [name, member] of Object.entries(properties)) {
        const sign = !isAnswer || required.includes(name) ? "" : "?";
        describe(`${path}.${name}${sign}`, member, isAnswer);
      }
      if (items) describe(`${path}[]`, items, isAnswer);
      if (typeof others === "object") describe(`${path}.*`, others, isAnswer);
      for (const value of values) lines.add(`${path} = ${JSON.stringify(value)}`);
    }
  }

  function kindsOf(schema, isAnswer) {
    const some = schema.anyOf ?? schema.oneOf ?? schema.allOf;
    if (some) return some.flatMap((each) => kindsOf(each, isAnswer));
    if (schema.$ref && !isAnswer) return kindsOf(schemas[schema.$ref.split("/").at(-1)], isAnswer);
    return Array.isArray(schema.type) ? schema.type.map((type) => ({ ...schema, type })) : [schema];
  }
}

function nameOf({ $ref, type, const: constant }) {
  if (constant !== undefined) return JSON.stringify(constant);
  return $ref?.split("/").at(-1) ?? type ?? "any";
}
