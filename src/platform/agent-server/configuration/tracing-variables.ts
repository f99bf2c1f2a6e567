// The variables by which the tracer of a deployment sends its runs to the platform. Pure.

type Variables = Readonly<Record<string, string>>;

const SWITCHES = ['LANGSMITH_TRACING_V2', 'LANGCHAIN_TRACING_V2', 'LANGSMITH_TRACING', 'LANGCHAIN_TRACING'];
/** Of a deployment that traces to an account of its own. */
const OTHERS = [
  ...['LANGSMITH_ENDPOINT', 'LANGCHAIN_ENDPOINT', 'LANGSMITH_RUNS_ENDPOINTS'],
  ...['LANGSMITH_API_KEY', 'LANGCHAIN_API_KEY'],
];

/**
 * `own`: of the workers. `tracesUrl`: where the platform takes runs without a key; undefined: nowhere. A deployment that says whether it
 * traces, or where to, is left as it is: it traces unless it says otherwise.
 */
export function withTracing(own: Variables, tracesUrl: string | undefined): Variables {
  if (tracesUrl === undefined || OTHERS.some((name) => Object.hasOwn(own, name))) return own;
  const isDecided = SWITCHES.some((name) => Object.hasOwn(own, name));
  return {
    ...own,
    ...(!isDecided && { LANGSMITH_TRACING: 'true' }),
    LANGSMITH_ENDPOINT: tracesUrl,
    LANGCHAIN_ENDPOINT: tracesUrl,
  };
}
