// Cookies of sessions, read and written: no script reads them, and no other site sends them. Pure.
import type { RequestHead } from './request-head.ts';

/** Every value that was sent under the name: of two, one was set by somebody else. */
export function cookieValues({ values }: Pick<RequestHead, 'values'>, name: string): readonly string[] {
  const prefix = `${name}=`;
  const pairs = values('cookie').flatMap((field) => field.split(';').map((pair) => pair.trim()));
  return pairs.filter((pair) => pair.startsWith(prefix)).map((pair) => pair.slice(prefix.length));
}

export type SessionCookie = {
  readonly name: string;
  /** Of characters that need no quotes. */
  readonly value: string;
  /** 0 deletes it. */
  readonly seconds: number;
  readonly isSecure: boolean;
};

export function formatCookie({ name, value, seconds, isSecure }: SessionCookie): string {
  const secure = isSecure ? '; Secure' : '';
  return `${name}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Strict${secure}`;
}
