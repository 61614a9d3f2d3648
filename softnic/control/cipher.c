// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softnic/control/cipher.h"
#include "softnic/seal/seal.h"

const char *softnic_cipher(void)
{
	return seal_cipher_name(seal_choose(seal_ciphers()));
}
