REPLACE INTO fenced_open_transaction (connection_id, resource, token, tx_name)
-- ? tx_name, ? resource, ? token, ? kept digest of the holder, ? issuer
SELECT CONNECTION_ID(), resource, token, ? FROM fenced_high_water_mark
WHERE resource = ? AND token = ? AND holder = ? AND issuer = ?
LOCK IN SHARE MODE
