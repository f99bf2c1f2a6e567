// The rules of the obvious design: picomatch on the Host field and on the path of `req.url`, the first match wins. It is written
// with care: the query is removed, a trailing `/*` matches everything below, names are matched without their port.
import picomatch from 'picomatch';

export type ObviousRule = {
  readonly match_hosts: readonly string[];
  readonly match_paths?: readonly string[];
  readonly headers: readonly { readonly name: string; readonly value: string }[];
};
export type ObviousHeaders = ObviousRule['headers'];
export type FindHeaders = (host: string | undefined, url: string | undefined) => ObviousHeaders;

export function compileObvious(rules: readonly ObviousRule[], secrets: Record<string, string>): FindHeaders {
  const compiled = rules.map(({ match_hosts, match_paths = [], headers }) => ({
    isHost: picomatch([...match_hosts], { nocase: true }),
    isPath: match_paths.length === 0 ? () => true : picomatch(match_paths.map(below)),
    headers: headers.map(({ name, value }) => ({
      name,
      value: value.replaceAll(/\{(\w+)\}/g, (_, secret: string) => secrets[secret] ?? ''),
    })),
  }));
  return (host = '', url = '') => {
    const name = host.replace(/:\d+$/, '').replace(/\.$/, '');
    const [path = ''] = url.split('?');
    return compiled.find(({ isHost, isPath }) => isHost(name) && isPath(path))?.headers ?? [];
  };
}

function below(pattern: string): string {
  return pattern.endsWith('/*') ? `${pattern}*` : pattern;
}
