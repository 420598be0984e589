/** Names the list from which a saga was opened, for the way to its neighbours and back. */
export const sagaList = 'saga-list';
