// The record of an exchange as a line for a terminal. Pure. What listens at the address of the admin API may be a program of the
// sandbox: nothing is taken for granted, and control characters are escaped.
import { escapeControls } from '../issue-lines.ts';

type Fields = Readonly<Record<string, unknown>>;

/** `12:00:00.123  200 injected  GET https://api.example.com:443/v1/models  rule openai  35.2 ms`. The time is UTC, as in the log. */
export function formatRecord(record: Fields): string {
  const { time, sandbox, status, outcome, reason, cause, duration_ms: duration } = record;
  const parts = [
    text(time).slice(11, 23) || '-',
    [(text(status) || '-').padStart(3), text(outcome), text(reason)].filter((one) => one !== '').join(' '),
    subjectOf(record),
    sandbox === 'default' ? '' : named('sandbox', sandbox),
    named('rule', record['rule']),
    named('callback', record['callback']),
    named('cause', cause),
    typeof duration === 'number' ? `${duration.toFixed(1)} ms` : '',
  ];
  return escapeControls(parts.filter((part) => part !== '').join('  '));
}

/** A tunnel, and a connection without a request, has no path; a request to the proxy itself has no authority. */
function subjectOf({ method, scheme, authority, path }: Fields): string {
  const isRequest = path !== undefined && (scheme === 'http' || scheme === 'https');
  const origin = isRequest && text(authority) !== '' ? `${scheme}://` : '';
  const target = `${origin}${text(authority)}${isRequest ? text(path) : ''}`;
  return [text(method), target].filter((one) => one !== '').join(' ');
}

function named(label: string, value: unknown): string {
  const shown = text(value);
  return shown === '' ? '' : `${label} ${shown}`;
}

function text(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}
