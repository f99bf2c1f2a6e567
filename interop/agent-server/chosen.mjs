// Where Sallyport responds otherwise than the public server on purpose, by the place that differs, and why.
export const chosen = [
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
  { pattern: /^POST \/assistants\.status: ours 404, peer 200$/, reason: 'an unknown graph is 404' },
  { pattern: /\.body\.multitask_strategy: ours "enqueue", peer "reject"$/, reason: 'enqueue is the default' },
  { pattern: /\/latest\.body\.(?:context|config|metadata|name)\b/, reason: 'a version is restored whole' },
  { pattern: /\.body\.context\.one: ours absent, peer 1$/, reason: 'the context is replaced whole' },
  { pattern: /\.body\.__error__\.message: ours "[^{]/, reason: 'an error is wrapped once' },
  {
    pattern: /_schema: ours null, peer \{/,
    reason: 'schemas are those that a graph declares, not those of its types',
  },
  {
    pattern: /\.body(?:\.\d+)?\.interrupts: ours \[.*, peer absent$/,
    reason: 'a state names its interrupts',
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
  { pattern: /^POST \/runs\.(?:status: ours 422|headers|body)/, reason: 'after_seconds below 0 is invalid' },
  { pattern: /^POST \/assistants\.body\.\w+: ours absent/, reason: 'an unknown graph is 404' },
];
