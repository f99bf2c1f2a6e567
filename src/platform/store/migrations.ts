// The migrations of the tables below the modules: identity and the audit log.

const names: readonly string[] = [
  '0001-identity',
  '0002-audit',
  '0003-listeners',
  '0004-sandbox-records',
  '0005-audit-settling',
  '0006-key-makers',
  '0007-vault',
];

// A file beside this one; the build copies the folder beside the bundle.
export const migrationFiles: readonly URL[] = names.map(
  (name) => new URL(`./migrations/${name}.sql`, import.meta.url),
);
