// `Bearer {API_TOKEN}`: literal text with the names of workspace secrets in braces.
// It is read once, when written; a secret's own value is never read as a template, so it may hold braces.

export type Template = { readonly parts: readonly (string | { readonly secret: string })[] };
export type TemplateError = typeof NO_PLACEHOLDER | typeof STRAY_BRACE;

/** Splits a template into literals and secret names; a string is the fault, as a sentence. */
export function parseSecretTemplate(text: string): Template | TemplateError {
  // A capture in split() is kept: literals at the even places, names at the odd ones.
  const pieces = text.split(/\{([A-Za-z_][A-Za-z0-9_]*)\}/);
  const parts: (string | { readonly secret: string })[] = [];
  for (const [i, piece] of pieces.entries()) {
    if (i % 2 === 1) parts.push({ secret: piece });
    else if (/[{}]/.test(piece)) return STRAY_BRACE;
    else if (piece !== '') parts.push(piece);
  }
  return pieces.length === 1 ? NO_PLACEHOLDER : { parts };
}

const NO_PLACEHOLDER =
  'A workspace_secret value should name a secret in braces, as in Bearer {API_TOKEN}; for text without a secret use plaintext';
const STRAY_BRACE =
  'A brace should enclose the name of a secret: {NAME}, of letters, digits and underscores, not beginning with a digit';
