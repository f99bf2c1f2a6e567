// Answers as data. Every error says what to do in `detail`; a document that does not fit is answered by a list of issues.
// Nothing here repeats what was sent.
import { capIssues, type Issue } from '../base/schema.ts';

export type AdminResponse = {
  readonly status: number;
  readonly fields?: Readonly<Record<string, string>>;
  /** The body; none when undefined. */
  readonly content?: { readonly type: string; readonly text: string };
  /** For the record alone. */
  readonly reason?: string;
  readonly revision?: number;
  readonly sandbox?: string;
};

export type Refusal = {
  readonly status: number;
  /** For the record: one word that does not change. */
  readonly reason: string;
  /** For the client: what to do. */
  readonly detail: string;
  readonly fields?: Readonly<Record<string, string>>;
};

export function ok(body: unknown, rest: Omit<AdminResponse, 'status' | 'content'> = {}): AdminResponse {
  return { status: 200, content: json(body), ...rest };
}

export function created(body: unknown, rest: Omit<AdminResponse, 'status' | 'content'>): AdminResponse {
  return { status: 201, content: json(body), ...rest };
}

export function refused({ status, reason, detail, fields }: Refusal): AdminResponse {
  return { status, reason, content: json({ detail }), ...(fields === undefined ? {} : { fields }) };
}

/** 422 with every issue at once. */
export function invalid(issues: readonly Issue[]): AdminResponse {
  return { status: 422, reason: 'invalid', content: json({ detail: capIssues(issues) }) };
}

/** Seconds, rounded up: a client that comes back too early is refused again. */
export function retryAfter(waitMs: number): Readonly<Record<string, string>> {
  return { 'Retry-After': String(Math.max(1, Math.ceil(waitMs / 1000))) };
}

function json(body: unknown): { readonly type: string; readonly text: string } {
  return { type: 'application/json', text: `${JSON.stringify(body)}\n` };
}
