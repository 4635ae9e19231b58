//! What a node knows about its attachments: what lives, what leaked.
