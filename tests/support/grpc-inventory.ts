import {
  loadPackageDefinition,
  Server,
  ServerCredentials,
  status,
  type Metadata,
  type sendUnaryData,
  type ServerUnaryCall,
  type ServiceClientConstructor,
} from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { ReflectionService } from '@grpc/reflection';

/** A real gRPC participant, with reflection: it reserves goods and releases them, and keeps a ledger of calls. */
export type GrpcInventory = Readonly<{
  port: number;
  protoFolder: string;
  calls: readonly InventoryCall[];
  stop(): void;
}>;

export type InventoryCall = Readonly<{
  method: 'Reserve' | 'Release';
  request: Readonly<Record<string, unknown>>;
  metadata: Metadata;
}>;

const protoFolder = new URL('protos/', import.meta.url).pathname;

export async function startGrpcInventory(onPort = 0): Promise<GrpcInventory> {
  const definition = loadSync('inventory.proto', {
    includeDirs: [protoFolder],
    keepCase: true,
    longs: String,
  });
  const packages = loadPackageDefinition(definition) as unknown as {
    shop: { inventory: { v1: { InventoryService: ServiceClientConstructor } } };
  };
  const calls: InventoryCall[] = [];
  type Call = ServerUnaryCall<Readonly<Record<string, unknown>>, object>;
  const note = (method: InventoryCall['method'], { request, metadata }: Call): void =>
    void calls.push({ method, request, metadata });
  const server = new Server();
  server.addService(packages.shop.inventory.v1.InventoryService.service, {
    reserve(call: Call, done: sendUnaryData<object>) {
      note('Reserve', call);
      if (call.request['sku'] === 'sold-out')
        return done({ code: status.FAILED_PRECONDITION, details: 'sold out' });
      done(null, { reservation_id: `r-${calls.length}`, qty: call.request['qty'] });
    },
    release(call: Call, done: sendUnaryData<object>) {
      note('Release', call);
      done(null, {});
    },
  });
  new ReflectionService(definition).addToServer(server);
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync(`127.0.0.1:${onPort}`, ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    );
  });
  return { port, protoFolder, calls, stop: () => server.forceShutdown() };
}
