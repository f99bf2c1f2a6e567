// The placeholders of the rules (`env_vars`): what a client in a box finds in the variables that would otherwise hold a credential.
// The sidecar has checked the document.
import { isObject } from '../base/json/json-document.ts';
import type { PolicyDocument } from './box-document.ts';

/** Of the enabled rules; the first rule that sets a name wins, as with hosts. */
export function placeholdersOf({ document: { rules } }: PolicyDocument): Readonly<Record<string, string>> {
  const found = new Map<string, string>();
  for (const rule of Array.isArray(rules) ? rules.filter(isObject) : []) {
    const variables = rule['enabled'] === false ? undefined : rule['env_vars'];
    for (const [name, value] of isObject(variables) ? Object.entries(variables) : [])
      if (typeof value === 'string' && !found.has(name)) found.set(name, value);
  }
  return Object.fromEntries(found);
}
