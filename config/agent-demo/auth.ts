// Two users, by their tokens. Each sees what belongs to them alone.
import { Auth, HTTPException } from '@langchain/langgraph-sdk/auth';

const USERS: Readonly<Record<string, string>> = { 'token-of-ada': 'ada', 'token-of-bob': 'bob' };

export const auth = new Auth()
  .authenticate(async (request: Request) => {
    const token = request.headers.get('authorization')?.replace(/^Bearer /, '') ?? '';
    const identity = USERS[token];
    if (identity === undefined)
      throw new HTTPException(401, { message: 'Send a token: Authorization: Bearer TOKEN' });
    return { identity, permissions: [] };
  })
  .on('*', ({ value, user }) => {
    if (typeof value === 'object' && value !== null && 'metadata' in value)
      value.metadata = { ...(value.metadata as object), owner: user.identity };
    return { owner: user.identity };
  })
  // The default assistants belong to nobody.
  .on('assistants', () => true);
