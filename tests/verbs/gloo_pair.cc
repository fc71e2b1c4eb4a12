// SPDX-License-Identifier: BSD-3-Clause
// A rank of two, by Gloo over its own ibverbs transport: adds arrays up, and looks at each sum.
//
//     gloo-pair RANK DEVICE FOLDER
//
// What was made is left to the process's end: Gloo ends the process where a thing goes while the
// completion of its last send is on its way.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "gloo/allreduce_ring.h"
#include "gloo/barrier_all_to_all.h"
#include "gloo/rendezvous/context.h"
#include "gloo/rendezvous/file_store.h"
#include "gloo/transport/ibverbs/device.h"

static long
wrong(const std::shared_ptr<gloo::Context> &ctx, int rank, size_t n)
{
	auto &x = *new std::vector<long>(n);
	auto &sum = *new gloo::AllreduceRing<long>(ctx, { x.data() }, static_cast<int>(n));
	long bad = 0;

	for (int turn = 1; turn <= 3; turn++) {
		for (size_t i = 0; i < n; i++)
			x[i] = static_cast<long>(i) * (rank + turn);
		sum.run();
		for (size_t i = 0; i < n; i++)
			bad += x[i] != static_cast<long>(i) * (1 + 2 * turn);
	}
	return bad;
}

int
main(int, char **argv)
{
	const int rank = atoi(argv[1]);
	auto &store = *new gloo::rendezvous::FileStore(argv[3]);
	auto &ctx = *new std::shared_ptr<gloo::rendezvous::Context>(
		std::make_shared<gloo::rendezvous::Context>(rank, 2));
	gloo::transport::ibverbs::attr attr;
	long bad = 0;

	attr.name = argv[2];
	attr.port = 1;
	attr.index = 0;
	ctx->connectFullMesh(store, *new std::shared_ptr<gloo::transport::Device>(
					    gloo::transport::ibverbs::CreateDevice(attr)));
	for (size_t n : { 1, 100, 5000, 300000 })
		bad += wrong(ctx, rank, n);
	(new gloo::BarrierAllToAll(ctx))->run();
	printf("rank %d: %s\n", rank, bad == 0 ? "good" : "bad");
	fflush(stdout);
	_exit(bad != 0);
}
