// What the clients of traces read back, by the steps that they report. The two differ where their languages do.

/** Each conversation has these below its root. */
const BELOW = ['attaching', 'failing', 'lookup', 'model'];
const times = (n, names) => names.flatMap((name) => Array.from({ length: n }, () => name)).toSorted();

const javascript = {
  input: { question: 'Why?', nested: { deep: [1, 2.5, null, '\u{1F600}'] } },
  error: 'Error: there is no such page',
  time: 'string',
  latency: 'number',
  attachments: {
    'attachment.note': ['text/plain', 200, true],
    'attachment.bytes': ['application/octet-stream', 200, true],
  },
  statuses: { conflict: 409, missing: 404, invalid: 422, noProject: 'Error' },
  duration: 'number',
};

const python = {
  ...javascript,
  error: "ValueError('there is no such page')",
  time: 'datetime',
  latency: 'float',
  attachments: { note: ['text/plain', true], bytes: ['application/octet-stream', true] },
  statuses: {
    ...{ conflict: 'LangSmithConflictError', missing: 'LangSmithNotFoundError', invalid: 'LangSmithError' },
    noProject: 'LangSmithNotFoundError',
  },
  duration: 'timedelta',
};

const languages = { javascript, python };

/** Without attachments where they were sent by `/runs/batch`, which has none. */
export function expectedTree(client, { hasAttachments = true } = {}) {
  const language = languages[client];
  return {
    root: ['conversation', 'chain', 'success', language.input, { reply: 'Because.' }, ['first', 'second']],
    metadata: ['thread-1', 'prod', 2],
    children: BELOW.map((name) => [name, name === 'failing' ? 'error' : 'success']),
    error: language.error,
    tokens: [10, 5, 15],
    'first token': language.time,
    attachments: hasAttachments ? language.attachments : {},
  };
}

const ROOTS = ['broken', 'conversation', 'later'];
const ALL = [...times(3, BELOW), ...ROOTS].toSorted();

function expectedOfFilters() {
  return {
    'eq(name, "model")': times(3, ['model']),
    'and(eq(run_type, "llm"), gt(total_tokens, 10))': times(3, ['model']),
    'neq(error, null)': ['broken', ...times(3, ['failing'])],
    'and(neq(error, null), eq(is_root, true))': ['broken'],
    'eq(status, "error")': ['broken', ...times(3, ['failing'])],
    'has(tags, "writes")': times(3, ['failing']),
    [`has(metadata, '{"source": "wiki"}')`]: times(3, ['lookup']),
    // Those below have the metadata of their root.
    'and(eq(metadata_key, "env"), eq(metadata_value, "prod"))': ALL,
    'and(in(metadata_key, ["session_id", "conversation_id", "thread_id"]), eq(metadata_value, "thread-2"), eq(is_root, true))':
      ['broken'],
    'and(eq(feedback_key, "helpful"), gte(feedback_score, 0.5))': ['conversation'],
    'and(eq(input_key, "question"), eq(input_value, "Why?"), eq(is_root, true))': ROOTS,
    'search("no such page")': times(3, ['failing']),
    'gt(latency, "2m")': [],
    'lt(latency, 3600)': ALL,
    'and(gt(start_time, "2023-07-15T12:34:56Z"), or(eq(name, "lookup"), not(neq(name, "attaching"))))': times(
      3,
      ['attaching', 'lookup'],
    ),
  };
}

function expectedQueries(statuses) {
  return {
    'is root': ROOTS,
    'run type': times(3, ['attaching', 'failing']),
    'with an error': ['broken'],
    trace: 5,
    parent: BELOW,
    query: times(3, ['lookup']),
    'trace filter': ['model'],
    'tree filter': ROOTS,
    limit: 4,
    ids: ['conversation'],
    since: [],
    ascending: ['conversation', 'later', 'broken'],
    descending: ['broken', 'later', 'conversation'],
    thread: ['conversation', 'later'],
    threads: [
      ['thread-1', 2],
      ['thread-2', 1],
    ],
    422: statuses.invalid,
    'no such run': statuses.missing,
  };
}

/** Three conversations, the last of which fails. */
export function expectedWhole(client) {
  const { statuses, latency, duration } = languages[client];
  return {
    ...expectedTree(client),
    feedback: ['colour', null, 'green', { colour: 'red' }, 'model'],
    'updated feedback': [1, 'Better.', 'green'],
    'feedback of the run': ['colour', 'helpful'],
    'feedback of models': ['colour'],
    feedback_stats: { n: 1, avg: 0.75, values: {} },
    ...expectedOfFilters(),
    ...expectedQueries(statuses),
    stats: [15, 45, latency],
    'stats of errors': [4, 1],
    'has no project': false,
    project: ['P made by hand', 'first', { a: 1 }],
    409: statuses.conflict,
    upsert: true,
    'has project': true,
    updated: 'third',
    projects: ['P', 'P made by hand'],
    'project stats': [3, duration],
    deleted: [false, statuses.noProject],
  };
}
