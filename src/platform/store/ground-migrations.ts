// The migrations of the tables below the modules: identity, the audit log and the vault. A module lists its own.

const names: readonly string[] = [
  '0001-identity',
  '0002-audit',
  '0005-audit-settling',
  '0006-key-makers',
  '0007-vault',
  '0008-audit-ids',
  '0009-home-workspaces',
  '0010-sessions',
  '0011-audit-filters',
];

// A file beside this one; the build copies the folder beside the bundle.
export const groundMigrations: readonly URL[] = names.map(
  (name) => new URL(`./migrations/${name}.sql`, import.meta.url),
);
