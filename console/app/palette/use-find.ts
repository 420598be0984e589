import { useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { useApi } from '../../components/session/api-context.ts';
import type { FoundItem, Operations } from '../../lib/server-shapes.ts';

type Found = Readonly<{
  items: readonly FoundItem[];
  unavailable: readonly string[];
  isSearching: boolean;
  error: Error | null;
}>;

/** A key of three characters may be one; fewer are typed on the way to a word. */
const minLength = 3;
const maxLength = 1000;
const afterMs = 150;
const none: readonly FoundItem[] = [];

/** What the server knows under the text, a moment after it was typed. */
export function useFind(text: string): Found {
  const api = useApi();
  const wanted = text.trim().slice(0, maxLength);
  const [asked, setAsked] = useState('');
  useEffect(() => {
    const timer = setTimeout(() => setAsked(wanted), afterMs);
    return () => clearTimeout(timer);
  }, [wanted]);
  const isAsked = asked.length >= minLength;
  const { data, error, isFetching } = useQuery({
    queryKey: ['find', asked],
    queryFn: ({ signal }) =>
      api.get<Operations['findItems']['answer']>(`/api/v1/find?q=${encodeURIComponent(asked)}`, signal),
    enabled: isAsked,
    staleTime: 0,
  });
  const isCurrent = isAsked && asked === wanted;
  return {
    items: isCurrent ? (data?.items ?? none) : none,
    unavailable: isCurrent ? (data?.unavailable ?? []) : [],
    isSearching: wanted.length >= minLength && (!isCurrent || isFetching),
    error: isCurrent ? error : null,
  };
}
