// Custom authentication that only reads: everybody sees everything, and may create nothing called "secret".
import { Auth, HTTPException } from '@langchain/langgraph-sdk/auth';

export const auth = new Auth()
  .authenticate(async (request) => {
    const key = request.headers.get('x-api-key');
    if (!key) throw new HTTPException(401, { message: 'No key' });
    return key;
  })
  .on('threads:create', ({ value }) => value.metadata?.name !== 'secret');
