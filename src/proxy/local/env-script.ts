// The script at /env of the reserved host, for `eval "$(curl -fsS http://sallyport.internal/env)"`: it fetches the CA bundle
// through the proxy into a new file and exports the variables that name it. It holds no token and nothing of the request,
// and leaves the proxy variables as they are.
import { shellExport, shellQuote } from '../../base/variables/shell-export.ts';
import { bundleVariables, extraVariable } from '../../tls/trust-variables.ts';

export type EnvScriptInput = {
  /** The name of the reserved host. */
  readonly name: string;
  /** Of the CA certificate, in hex: part of the name of the file. */
  readonly fingerprint: string;
  /** The `env_vars` of the rules. */
  readonly placeholders: Readonly<Record<string, string>>;
};

/** POSIX sh. If it fails, it exports nothing, says why on standard error, and its status is 1. */
export function envScript({ name, fingerprint, placeholders }: EnvScriptInput): string {
  const trusted = [...bundleVariables, extraVariable];
  const { variables, left } = untaken(placeholders);
  const fixed = { [PROXY_SWITCH]: '1', ...variables };
  return [
    '# Sallyport: makes the programs of this shell trust the CA certificate of the proxy.',
    `sallyport_ca="$(`,
    ...fetching(shellQuote(`http://${name}/ca-bundle.pem`), shellQuote(`/sallyport-${fingerprint}.pem`)),
    `)" || sallyport_ca=''`,
    `if [ -n "$sallyport_ca" ]; then`,
    ...trusted.map((variable) => `export ${variable}="$sallyport_ca"`),
    Object.entries(fixed)
      .map(([variable, value]) => shellExport(variable, value))
      .join('')
      .trimEnd(),
    ...(left > 0
      ? [`echo 'sallyport: ${left} env_vars of the rules are left out: they are too many' >&2`]
      : []),
    'unset sallyport_ca',
    'else',
    'unset sallyport_ca',
    `echo 'sallyport: the CA bundle could not be stored: is http_proxy set, is curl, wget, python3 or node installed, is TMPDIR writable?' >&2`,
    'false',
    'fi',
    '',
  ].join('\n');
}

/** Without it Node reads no proxy variable. */
const PROXY_SWITCH = 'NODE_USE_ENV_PROXY';

// Images of Python and of Node have neither curl nor wget. Both programs get the file and the URL as arguments.
const PYTHON_FETCH =
  'import sys, urllib.request as r; open(sys.argv[1], "wb").write(r.urlopen(sys.argv[2]).read())';
const NODE_FETCH =
  'fetch(process.argv[2]).then(async (r) => { if (!r.ok) throw r.status; require("node:fs").writeFileSync(process.argv[1], await r.text()); })';

/**
 * The body of a subshell that prints the path of the file. The proxy is named by a variable, because other users can read
 * the arguments of a process and its URL may hold a token. Others may write to the directory too: the file is created under
 * a name that nobody can guess, rename() follows no link, and what has the final name must then be our own regular file.
 * Where another user has taken that name, the file keeps its first one. The directory of another user (su keeps the variables)
 * is skipped even by root: its owner could replace the file, by a link too. A relative one leads elsewhere after `cd`.
 */
function fetching(url: string, file: string): readonly string[] {
  return [
    `for directory in "\${XDG_RUNTIME_DIR:-}" "\${TMPDIR:-}" /tmp; do`,
    `temporary=''`,
    `case "$directory" in (/tmp) ;; (/*) ${isOurs('"$directory"')} || continue ;; (*) continue ;; esac`,
    `file="$directory"${file}`,
    `temporary="$(mktemp "$file.XXXXXX" 2>/dev/null)" && break`,
    'done',
    `proxy="\${http_proxy:-\${HTTP_PROXY:-\${https_proxy:-\${HTTPS_PROXY:-\${all_proxy:-\${ALL_PROXY:-}}}}}}"`,
    `export http_proxy="$proxy" no_proxy='' NO_PROXY='' ${PROXY_SWITCH}=1`,
    'has() { command -v "$1" >/dev/null 2>&1; }',
    'fetch() {',
    `if has curl; then curl -fsS -o "$temporary" ${url}`,
    `elif has wget; then wget -q -O "$temporary" ${url}`,
    `elif has python3; then python3 -c ${shellQuote(PYTHON_FETCH)} "$temporary" ${url}`,
    `else node -e ${shellQuote(NODE_FETCH)} "$temporary" ${url}`,
    'fi',
    '}',
    `[ -n "$proxy" ] && [ -n "$temporary" ] && fetch && chmod 0644 "$temporary" || { rm -f "$temporary"; exit 1; }`,
    `[ ! -d "$file" ] && mv -f "$temporary" "$file" 2>/dev/null || file="$temporary"`,
    `[ -f "$file" ] && [ ! -L "$file" ] && [ -O "$file" ] && printf '%s' "$file"`,
  ];
}

/** A test that the directory is the caller's or that of root. */
function isOurs(directory: string): string {
  return `[ -O ${directory} ] || [ -n "$(find ${directory}/. -prune -user 0 2>/dev/null)" ]`;
}

// A tenant must not redirect the client to another proxy or past this one.
const PROXY_VARIABLE = /^(?:https?|all|grpc|no|wss?|ftp)_proxy$/i;

// An environment of megabytes lets no program start, and the script is made in one turn of the event loop.
const MAX_VARIABLES = 500;
const MAX_CHARACTERS = 65_536;

/** What this script sets itself is not a credential, whatever the rules say. `left`: how many are too many. */
function untaken(placeholders: Readonly<Record<string, string>>) {
  const own = new Set([...bundleVariables, extraVariable, PROXY_SWITCH]);
  const all = Object.entries(placeholders);
  const variables: Record<string, string> = {};
  let characters = 0;
  for (const [i, [name, value]] of all.entries()) {
    characters += name.length + value.length;
    if (i >= MAX_VARIABLES || characters > MAX_CHARACTERS) return { variables, left: all.length - i };
    if (!own.has(name) && !PROXY_VARIABLE.test(name)) variables[name] = value;
  }
  return { variables, left: 0 };
}
