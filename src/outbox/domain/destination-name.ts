const destinationName = /^[a-z][a-z\d_.-]{0,99}$/;

/** The rule of the configuration, which `outbox.add_order` checks too: an order for any other name is never sent. */
export function isDestinationName(text: string): boolean {
  return destinationName.test(text);
}
