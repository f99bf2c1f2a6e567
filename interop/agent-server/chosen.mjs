// Where Sallyport responds otherwise than the public server on purpose, by the place that differs, and why. `only`: in the cases
// with these names.
const chosen = [
  {
    only: /^(?!invalid)/,
    pattern: /\/(?:wait|join)\.headers\.content-type: ours "application\/json", peer "text\/plain"$/,
    reason: 'a result that was waited for is JSON, and says so',
  },
  {
    pattern: /\.body\.(?:detail|code|errors)\b|\.body: ours \{"(?:detail|code)"/,
    reason: 'errors are JSON with a detail',
  },
  {
    pattern: /\.headers\.content-type: ours "application\/(?:problem\+)?json", peer "text\/plain"/,
    reason: 'errors are JSON with a detail',
  },
  { pattern: /\.status: ours 422, peer 400$/, reason: 'invalid input is 422' },
  { pattern: /\.body\.(?:success|error)\b.*: ours absent/, reason: 'invalid input is 422 with a list' },
  { pattern: /\/runs\/stream\.body\.\d+\.id: ours "\d+", peer null$/, reason: 'stateless streams have ids' },
  { pattern: /\/runs(?:\/\w+)?\.status: ours 404, peer 422$/, reason: 'a run on an unknown thread is 404' },
  { pattern: /\/runs\.status: ours 409, peer 422$/, reason: 'a busy thread is 409' },
  {
    pattern: /\.body(?:\.\d+)?\.multitask_strategy: ours "enqueue", peer "reject"$/,
    reason: 'enqueue is the default',
  },
  { pattern: /\/latest\.body\.(?:context|config|metadata|name)\b/, reason: 'a version is restored whole' },
  { pattern: /\.body\.context\.one: ours absent, peer 1$/, reason: 'the context is replaced whole' },
  { pattern: /\.body\.__error__\.message: ours "[^{]/, reason: 'an error is wrapped once' },
  {
    pattern: /_schema: ours null, peer \{/,
    reason: 'schemas are those that a graph declares, not those of its types',
  },
  {
    pattern: /\.body(?:\.\d+)?(?:\.tasks\.\d+\.state)?\.interrupts: ours \[.*, peer absent$/,
    reason: 'a state names its interrupts',
  },
  {
    pattern: /\.(?:configurable|metadata)\.user-agent: ours absent, peer "node"$/,
    reason: 'fields of the request are sealed, for the nodes of its run alone',
  },
  {
    only: /^a graph that throws$/,
    pattern: /^GET \/threads\/id-\d+\.body\.error: ours \{.*, peer absent$/,
    reason: 'a thread says why its last run failed',
  },
  {
    only: /^a busy thread$/,
    pattern: /^GET \/threads\/id-\d+\.body\.(?:values|interrupts): ours \{.*, peer absent$/,
    reason: 'a run that is cancelled keeps its progress',
  },
  {
    pattern: /langgraph_version|langgraph_api_url/,
    reason: 'the version of the package that runs the graph',
  },
  {
    pattern: /\.state_updated_at: ours "TIME", peer absent$/,
    reason: 'a thread says when its state changed',
  },
  { pattern: /^GET .*content-location: ours "\/threads/, reason: 'following a run names it too' },
  { pattern: /\.__error__\.error: ours "\w+", peer "Error"$/, reason: 'an error is wrapped once' },
  {
    only: /^invalid: POST \/runs .*"after_seconds":-1/,
    pattern:
      /^POST \/runs\.(?:status: ours 422, peer 200$|headers\.content-location: ours null|body\.\w+: ours absent)/,
    reason: 'after_seconds below 0 is invalid',
  },
  {
    only: /^invalid: POST \/assistants .*"graph_id":"none"/,
    pattern: /^POST \/assistants\.(?:status: ours 404, peer 200$|body\.\w+: ours absent)/,
    reason: 'an unknown graph is 404',
  },
];

/** Why the two differ in this place of this case; undefined where they must not. */
export function reasonOf(name, line) {
  return chosen.find(({ only, pattern }) => (only?.test(name) ?? true) && pattern.test(line))?.reason;
}
