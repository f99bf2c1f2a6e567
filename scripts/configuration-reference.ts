// The content of docs/configuration.md: each variable with its key and its default from the schema. What a setting means is
// written on the page, and kept; so are defaults that are no value, such as a file of the state directory.
import { configJsonSchema, configVariables } from '../src/sidecar/config.ts';

type Property = { readonly default?: unknown; readonly properties?: Readonly<Record<string, Property>> };

const HEAD = '| variable | key | default | meaning |\n|---|---|---|---|\n';
const ROW = /^\| `(SALLYPORT_[A-Z_]+)` \| (.*?) \| ?(.*?) ?\| (.*) \|$/;

/** The page with a current table. A setting that it lacks gets a row without a meaning at the end. */
export function configurationReference(page: string): string {
  const start = page.indexOf(HEAD) + HEAD.length;
  const end = page.indexOf('\n\n', start);
  const rows = page.slice(start, end).split('\n');
  const settings = configVariables().filter(({ key }) => !/^(limits|timeouts)\./.test(key));
  const named = rows.map((row) => ROW.exec(row)?.[1]);
  const current = rows.flatMap((row) => currentRow(row, settings));
  const missing = settings.filter(({ name }) => !named.includes(name));
  const added = missing.map(({ name, key }) => toRow(name, key, defaultOf(key) ?? '', ''));
  return page.slice(0, start) + [...current, ...added].join('\n') + page.slice(end);
}

/** Of a variable that is no setting of the file, as it is; of one that does not exist any more, none. */
function currentRow(row: string, settings: ReturnType<typeof configVariables>): readonly string[] {
  const [, name = '', key = '', written = '', meaning = ''] = ROW.exec(row) ?? [];
  const setting = settings.find((one) => one.name === name);
  if (setting === undefined) return key.startsWith('`') ? [] : [row];
  return [toRow(name, setting.key, defaultOf(setting.key) ?? written, meaning)];
}

function toRow(name: string, key: string, fallback: string, meaning: string): string {
  return `| \`${name}\` | \`${key}\` |${fallback === '' ? '' : ` ${fallback}`} | ${meaning} |`;
}

/** Undefined where the schema has none. */
function defaultOf(key: string): string | undefined {
  const root = configJsonSchema() as Property;
  const property = key.split('.').reduce<Property | undefined>((at, name) => at?.properties?.[name], root);
  const value = property?.default;
  if (value === undefined) return undefined;
  const text = Array.isArray(value) ? value.join(',') : String(value);
  return text === '' ? '' : `\`${text}\``;
}
