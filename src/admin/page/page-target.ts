// What the page knows of the sidecar: closures that only read, and return what they show as texts. No secret value passes here.

/** A name and its value. */
export type ShownRow = readonly [label: string, text: string];

export type ShownExplanation = {
  readonly isRefused: boolean;
  readonly rows: readonly ShownRow[];
};

/** A rule or a callback that is in force. */
export type ShownEntry = {
  readonly name: string;
  readonly hosts: readonly string[];
  /** Empty: every path. */
  readonly paths: readonly string[];
  /** Names of headers; of a callback, its endpoint. */
  readonly gives: readonly string[];
  /** How many requests it has had, by outcome. */
  readonly requests: readonly string[];
};

export type ShownRules = {
  readonly revision: number;
  readonly rules: readonly ShownEntry[];
  readonly callbacks: readonly ShownEntry[];
};

/** Values that belong together; `problem` says what is wrong with them and what to do. */
export type ShownGroup = {
  readonly title: string;
  readonly rows: readonly ShownRow[];
  readonly problem?: string;
};

export type PageTarget = {
  /** Ids, `default` first. */
  sandboxes(): readonly string[];
  /** What the rules of the sandbox decide; a text says what is wrong with the URL. Undefined: no such sandbox. */
  explain(sandbox: string, url: string, method: string): ShownExplanation | string | undefined;
  /** Undefined: no such sandbox. */
  rules(sandbox: string): ShownRules | undefined;
  state(): readonly ShownGroup[];
};
