// One client of the suite as data: what must be installed, how it is run, and how many requests it makes.

/** Commands are shell lines with these names in braces, which the driver replaces by absolute paths. */
export type Command = string;

export type ClientRow = {
  /** For `--only`; unique. */
  readonly name: string;
  /** As the document shows it. */
  readonly client: string;
  readonly group: Group;
  /** What must be installed; keys of `installation/installations.ts`. */
  readonly needs: readonly string[];
  /** Prints the version somewhere in its output. */
  readonly version: Command;
  readonly command: Command;
  /** Settings of the program itself, in place with and without `run`. Never a proxy or a CA certificate. */
  readonly settings?: Readonly<Record<string, string>>;
  /** How many requests the command makes. Undefined: as many as the proxy has recorded, and at least one. */
  readonly requests?: number;
  /** The program prints `spread MS`, the time between the first and the last event of a stream. */
  readonly streams?: true;
  /** Also behind `proxy` with a token. */
  readonly token?: true;
  /** Programs that do not work with what `run` sets. */
  readonly cure?: Cure;
  readonly deadlineSeconds?: number;
};

export type Cure = {
  /** One line for the document. */
  readonly text: string;
  /** The command with the cure in it; undefined where nothing helps. */
  readonly command?: Command;
  readonly settings?: Readonly<Record<string, string>>;
};

export const groups = {
  program: 'Programs',
  package: 'Package managers',
  node26: 'Node 26',
  node20: 'Node 20',
  javascript: 'Bun and Deno',
  python: 'Python',
  compiled: 'Go and Rust',
  java: 'Java',
  script: 'Ruby, PHP and Perl',
  browser: 'Browsers',
} as const;

export type Group = keyof typeof groups;
