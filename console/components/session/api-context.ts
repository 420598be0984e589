import { createContext, useContext } from 'react';
import { createApi, type Api } from '../../lib/api/api-client.ts';

export const ApiContext = createContext<Api>(createApi(''));

export function useApi(): Api {
  return useContext(ApiContext);
}
