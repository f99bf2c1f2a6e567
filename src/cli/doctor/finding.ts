// One finding of `sallyport doctor`: what was checked, with what result, and for a failure what to do.

export type Finding = {
  readonly check: string;
  readonly state: 'ok' | 'failed' | 'skipped';
  readonly text: string;
  /** What to do; with every failure. */
  readonly cure?: string;
};

export function ok(check: string, text: string): Finding {
  return { check, state: 'ok', text };
}

export function failed(check: string, text: string, cure: string): Finding {
  return { check, state: 'failed', text, cure };
}

export function skipped(check: string, text: string): Finding {
  return { check, state: 'skipped', text };
}
